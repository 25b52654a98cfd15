"""HTTP, WebSocket and the mounted MCP: the operations for other processes."""

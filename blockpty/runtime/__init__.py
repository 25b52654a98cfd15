"""The asyncio glue: joins the pure machine, the files and the host to conversations."""

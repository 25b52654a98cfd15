"""Policy: what may leave, and what may be typed. Pure; the runtime asks it."""

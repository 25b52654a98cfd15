"""The files of a conversation: the only room that knows their names and how to read and write them."""

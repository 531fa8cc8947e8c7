"""What looks on while layers run: the stack of calls, buffers that are restored afterwards."""

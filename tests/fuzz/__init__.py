"""Fuzzers: broken files of every kind, in process; each gives a result or a clear error, in bounded time and memory."""

"""The user's functions in queries: how they are loaded, what values they see, what becomes of their results."""

"""The language server: server.py answers an editor, analysis.py imports its files in processes of their own."""

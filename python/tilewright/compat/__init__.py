"""The migration report: which programs written against TileLang run here, and why the others do not.

tilewright compat PATH...
"""

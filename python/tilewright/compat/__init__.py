"""The migration report: which programs written against TileLang run here, and why the others do not.

python -m tilewright.compat PATH...
"""

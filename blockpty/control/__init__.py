"""Control: who asks, who may type, and which commands a person has to allow.

Words: docs/reference/glossary.md.
"""

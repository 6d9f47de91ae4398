"""Workflows as documents: reading them, compiling them, checking them, drawing them, writing them.

`document` is the JSON and its typed view; `graph` is a version compiled for the engine, made by
`compiler`; `validate` finds everything that is wrong at once; `builder` writes documents from
Python; `mermaid` draws them. Nothing here runs a workflow: that is `engine`.
"""

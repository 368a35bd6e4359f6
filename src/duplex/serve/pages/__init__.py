"""The page of ``duplex serve``: runs, a run, a call and a call in progress, as HTML.

Made on the server from what the layers below judged and measured; its few scripts are
files of this package. It computes no metric, and nothing that a file or a peer said can
become markup. The application includes :func:`duplex.serve.pages.routes.routes`.
"""

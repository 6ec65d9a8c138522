"""tilewright lsp: what an editor shows of tile programs while they are typed."""

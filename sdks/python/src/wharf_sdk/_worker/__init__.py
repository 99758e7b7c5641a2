"""What runs handlers inside the workers of a tool server.

`parent` imports the handler once; `keeper` forks for a run and looks after its processes;
`run` calls the handler; `channel` speaks with the server; `values` and `answer` judge what the
handler gave; `hydration` moves files. Authors use none of it directly.
"""

"""Cells of a notebook, in which `await` needs no function; blocks, runs and screens show themselves."""

# %%
import blockpty

engine = blockpty.Engine()
shell = await engine.open("notebook")

# %%
await shell.run("seq 3; date --version | head -n 1")

# %%
await shell.screen(format="html")

# %%
(await shell.blocks(order="newest", page_size=1)).blocks[0]

# %%
await engine.close()

"""Files in and out: where the shell is, also behind ssh, su or a container."""

import blockpty

with blockpty.sync.Engine() as engine, engine.open() as shell:
    put = shell.put_file("table.csv", "name,size\nada,3\n", mode="600")
    print(put.bytes, put.digest[:8])
    print(shell.run("sort table.csv > sorted.csv; tar cf both.tar *.csv", check=True).ok)
    print(shell.get_file("sorted.csv").data.splitlines())
    archive = shell.get_file("both.tar").content
    print(type(archive), archive[:9])

# Prints:
# 16 5a6c7a2d
# True
# ['ada,3', 'name,size']
# <class 'bytes'> b'sorted.cs'

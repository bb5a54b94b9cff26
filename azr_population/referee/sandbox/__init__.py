"""The far side of the wall: what runs in the zygote and in its children.

These modules import nothing but the standard library and each other. A zygote loads them by path
into a bare interpreter, so that neither `azr_population` nor its dependencies are ever mapped into
a process that executes model-written text.
"""

"""The untrusted side: what runs in the zygote and its children.

These modules import only the standard library and each other. A zygote loads them by path into a
bare interpreter, so that neither `azr_population` nor its dependencies are ever in a process that
executes model-written code.
"""

"""The method: members and their ratings, who meets whom, the step, rewards, replacement, records.

A host (`hosts/local` on this machine, `hosts/azr` inside AZR) brings an engine, and takes training
samples and replacements.
"""

"""What the network is trained to do besides translating people's texts.

`toy` (copying and reversing), `grammar` (English and German of our own making, for the demo) and
`parsing` (section 6.3).
"""

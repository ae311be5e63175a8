"""Back ends: how a captured graph is run; O0 straight-line kernel calls, O1 fused kernels where they win, O2 everything the machine has."""

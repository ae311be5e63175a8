"""Products of vectors and matrices, decompositions, Fourier and cosine transforms."""

"""Parse a program to find the MindSpore names, options and calls of older releases that it uses. The program does not run."""

"""`python -m torchspore script.py [arguments]`, or any command of `torchspore`."""
from torchspore.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())

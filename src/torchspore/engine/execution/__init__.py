"""How calls run: waiting for the device in PyNative mode, equal bits from equal inputs, half precision on the CPU."""

"""Our client beside other Python clients."""

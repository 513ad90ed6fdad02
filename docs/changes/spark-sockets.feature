Jobs of `kgateway spark` on one machine have Unix sockets between Java and Python, which makes reading from files up to a fifth faster.

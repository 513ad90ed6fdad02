`kgateway why|plugins|loglevel|profile` ask a running gateway through its control socket.

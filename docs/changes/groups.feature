Consumer groups: the classic protocol and KIP-848, groups that change between them, offsets that last, and `kgateway groups`.

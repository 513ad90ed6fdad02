Clients that ask one thing at a time, such as members of groups, cost the server an eighth less of its processor; a rebalance of a thousand classic members takes 0.16 s instead of 0.26.

"""What several tests share: homes, hosts, servers, terminals, and references to compare with."""

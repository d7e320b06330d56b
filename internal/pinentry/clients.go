package pinentry

import (
	"cmp"
	"slices"
)

// Clients counts the connections to an agent, as seen from the agent.
type Clients struct {
	Own     int // from this process, except those for ssh
	Foreign int // from others, and from this process for ssh
	Gone    int // closed at the other end, which the agent has not noticed: it works there for nobody
}

// Connections are the connections to an agent that the system has listed, each once.
type Connections []connection

// A connection is one connection to an agent, whose end of it is the socket with this inode.
type connection struct {
	inode uint32
	end   clientEnd
}

// A clientEnd says whose the other end is.
type clientEnd uint8

const (
	endForeign clientEnd = iota // see Clients
	endOwn
	endGone
)

// newConnections sorts the list and drops duplicates: the system may list a connection
// twice if others begin or end meanwhile.
func newConnections(listed []connection) Connections {
	slices.SortStableFunc(listed, func(a, b connection) int { return cmp.Compare(a.inode, b.inode) })
	return slices.CompactFunc(listed, func(a, b connection) bool { return a.inode == b.inode })
}

// follow reports whether all of them were in an earlier list, even with another end.
func (c Connections) follow(earlier Connections) bool {
	return !slices.ContainsFunc(c, func(one connection) bool {
		return !slices.ContainsFunc(earlier, func(other connection) bool { return other.inode == one.inode })
	})
}

// clients counts them. Those that the agent has beyond them come from another network
// namespace, such as a container's that has the agent's socket: they are foreign.
func (c Connections) clients(beyond int) Clients {
	clients := Clients{Foreign: beyond}
	for _, one := range c {
		switch one.end {
		case endOwn:
			clients.Own++
		case endGone:
			clients.Gone++
		case endForeign:
			clients.Foreign++
		}
	}
	return clients
}

package wan

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// The ends' addresses, each in its own namespace.
const (
	ServerAddr = "10.99.0.2"
	ClientAddr = "10.99.0.1"
)

const (
	maxPacket = 2000 // bytes; more than the interfaces' MTU
	inFlight  = 8192 // packets under way in each direction
)

// A Link is two namespaces and the delay between them.
type Link struct {
	server, client *end
	pumps          sync.WaitGroup
}

// end is one namespace and its interface, whose packets carry moves.
type end struct {
	namespace string
	tun       *os.File
}

// New makes a link with a round trip time. The caller must Close it.
func New(rtt time.Duration) (*Link, error) {
	l := &Link{}
	var err error
	if l.server, err = newEnd(fmt.Sprintf("gbwan-s%d", os.Getpid()), ServerAddr); err != nil {
		return nil, err
	}
	if l.client, err = newEnd(fmt.Sprintf("gbwan-c%d", os.Getpid()), ClientAddr); err != nil {
		return nil, errors.Join(err, l.server.close())
	}
	l.carry(l.server.tun, l.client.tun, rtt/2)
	l.carry(l.client.tun, l.server.tun, rtt/2)
	return l, nil
}

// Close removes both namespaces. What runs in them must have ended.
func (l *Link) Close() error {
	err := errors.Join(l.server.close(), l.client.close())
	l.pumps.Wait()
	return err
}

// InServer and InClient return the words that, before a command, run it in the
// namespace.
func (l *Link) InServer() []string { return l.server.enter() }

// InClient is InServer for the other end.
func (l *Link) InClient() []string { return l.client.enter() }

func (e *end) enter() []string { return []string{"ip", "netns", "exec", e.namespace} }

func (e *end) close() error {
	return errors.Join(e.tun.Close(), ip("netns", "del", e.namespace))
}

func newEnd(namespace, addr string) (*end, error) {
	if err := ip("netns", "add", namespace); err != nil {
		return nil, err
	}
	e := &end{namespace: namespace}
	tun, err := openTun(namespace)
	if err != nil {
		return nil, errors.Join(err, ip("netns", "del", namespace))
	}
	e.tun = tun
	for _, args := range [][]string{
		{"link", "set", "lo", "up"},
		{"addr", "add", addr + "/24", "dev", "wan0"},
		{"link", "set", "wan0", "up", "txqueuelen", "10000"},
	} {
		if err := ip(append([]string{"-n", namespace}, args...)...); err != nil {
			return nil, errors.Join(err, e.close())
		}
	}
	return e, nil
}

func ip(args ...string) error {
	if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("ip %q: %w: %s", args, err, out)
	}
	return nil
}

// openTun makes the interface wan0 in a namespace (tun(4)). The thread that enters the
// namespace stays locked to its goroutine, and ends with it.
func openTun(namespace string) (tun *os.File, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		tun, err = openTunHere("/run/netns/" + namespace)
	}()
	<-done
	return tun, err
}

func openTunHere(namespace string) (*os.File, error) {
	ns, err := os.Open(namespace)
	if err != nil {
		return nil, err
	}
	defer ns.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		return nil, fmt.Errorf("setns: %w", err)
	}
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("/dev/net/tun: %w", err)
	}
	request, err := unix.NewIfreq("wan0")
	if err != nil {
		return nil, err
	}
	request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI)
	if err := unix.IoctlIfreq(fd, unix.TUNSETIFF, request); err != nil {
		return nil, errors.Join(fmt.Errorf("TUNSETIFF: %w", err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}

// carry moves packets from one end to the other, each after the delay, until
// the ends are closed.
func (l *Link) carry(to, from *os.File, delay time.Duration) {
	type packet struct {
		data []byte
		due  time.Time
	}
	queue := make(chan packet, inFlight)
	l.pumps.Go(func() {
		defer close(queue)
		for {
			data := make([]byte, maxPacket)
			n, err := from.Read(data)
			if err != nil {
				return
			}
			queue <- packet{data[:n], time.Now().Add(delay)}
		}
	})
	l.pumps.Go(func() {
		for p := range queue {
			<-time.After(time.Until(p.due))
			_, _ = to.Write(p.data) // lost, as on any network
		}
	})
}

package main

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"gpg-bridge/internal/testkit/sshd"
	"gpg-bridge/internal/testkit/wan"
)

// roundTrips are the links measured; 0 is loopback.
var roundTrips = [...]time.Duration{0, 20 * time.Millisecond, 100 * time.Millisecond}

// A moment is a step of a connection, recognised by what the program prints at -v, or by what
// arrives from the host.
type moment int

const (
	authenticated moment = iota
	forwarded
	answered // the command's output is here
	ended    // the program has ended
	numMoments
)

var momentNames = [numMoments]string{authenticated: "authenticated", forwarded: "forwarded", answered: "command done", ended: "ended"}

// marks has what each program prints at a moment.
var marks = [...]struct {
	text string
	at   moment
}{
	{"msg=authenticated", authenticated}, {"Authenticated to ", authenticated},
	{"msg=forwarded", forwarded}, {"remote forward success", forwarded},
}

// latency measures the time to a forwarded agent and to a finished command, over links with a
// real delay.
func latency(l *lab) {
	if runtime.GOOS != "linux" {
		fmt.Println("\nlatency: needs Linux, for its network namespaces")
		return
	}
	fmt.Printf("\nms until …, median of %d rounds\n", rounds)
	for _, rtt := range roundTrips {
		l.latencyAt(rtt)
	}
}

func (l *lab) latencyAt(rtt time.Duration) {
	server, inClient := l.sshd, []string(nil)
	if rtt > 0 {
		link, err := wan.New(rtt)
		l.must(err)
		defer func() { l.must(link.Close()) }()
		server = sshd.Start(l.p, sshd.Config{Options: l.sshdOptions(), Addr: wan.ServerAddr, Inside: link.InServer()})
		defer server.Stop()
		inClient = link.InClient()
	}
	columns := l.latencyColumns(server)
	times := make([][numMoments][]time.Duration, len(columns))
	for range rounds {
		for i, c := range columns {
			for at, took := range l.timeline(append(slices.Clone(inClient), c.args...)) {
				times[i][at] = append(times[i][at], took)
			}
			server.KillSessions()
		}
	}
	l.printLatency(rtt, columns, times)
}

// latencyColumns returns the programs to compare. The middle one is gpg-bridge when it does only
// what ssh does, and prepares nothing.
func (l *lab) latencyColumns(server *sshd.Server) []column {
	ours := []string{l.program, "ssh", "-v", "-F", server.ConfigFile}
	return []column{
		{"gpg-bridge ssh", append(slices.Clone(ours), "host", "echo done")},
		{"  without preparation", append(slices.Clone(ours), "--remote-socket", l.socket, "host", "echo done")},
		{"ssh -R", []string{"ssh", "-v", "-F", server.ConfigFile, "-o", "LogLevel=DEBUG", "-R", l.socket + ":" + l.extra, "host", "echo done"}},
	}
}

func (l *lab) printLatency(rtt time.Duration, columns []column, times [][numMoments][]time.Duration) {
	fmt.Printf("\n%-24s", fmt.Sprintf("round trip %v", rtt))
	for _, name := range momentNames {
		fmt.Printf(" %14s", name)
	}
	fmt.Printf(" %16s\n", "done, ssh = 1")
	ssh := median(times[len(times)-1][answered])
	for i, c := range columns {
		fmt.Printf("%-24s", c.name)
		for at := range numMoments {
			fmt.Printf(" %14.0f", median(times[i][at]).Seconds()*1000)
		}
		fmt.Printf(" %16.2f\n", median(times[i][answered]).Seconds()/ssh.Seconds())
	}
}

// timeline runs a command line and returns when each moment came.
func (l *lab) timeline(args []string) [numMoments]time.Duration {
	l.removeSocket()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = l.laptop.Env()
	stdout, err := cmd.StdoutPipe()
	l.must(err)
	stderr, err := cmd.StderrPipe()
	l.must(err)
	var at [numMoments]time.Duration
	var said strings.Builder
	start := time.Now()
	l.must(cmd.Start())
	var readers sync.WaitGroup
	readers.Go(func() { eachLine(stdout, func(string) { at[answered] = time.Since(start) }) })
	readers.Go(func() {
		eachLine(stderr, func(line string) {
			said.WriteString(line + "\n")
			for _, mark := range marks {
				if strings.Contains(line, mark.text) && at[mark.at] == 0 {
					at[mark.at] = time.Since(start)
				}
			}
		})
	})
	readers.Wait()
	if err := cmd.Wait(); err != nil {
		l.p.Fatal(strings.Join(args, " ") + ": " + err.Error() + "\n" + said.String())
	}
	at[ended] = time.Since(start)
	return at
}

func eachLine(r io.Reader, do func(string)) {
	for lines := bufio.NewScanner(r); lines.Scan(); {
		do(lines.Text())
	}
}

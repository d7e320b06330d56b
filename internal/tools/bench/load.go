package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	atOnce    = 16
	loadTime  = 500 * time.Millisecond // of one measure
	bulkBytes = 64 << 20               // moved by one measure
	greetTime = 50 * time.Millisecond  // in which a session must be served
	talkTime  = 15 * time.Second       // longer than any talk should last
)

var errUnexpected = errors.New("an unexpected answer")

// A talk is a gpg's conversation with its agent.
type talk struct {
	conn net.Conn
	in   *bufio.Reader
}

// dialTalk connects and is greeted.
func dialTalk(socket string) (*talk, error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil, err
	}
	if err := conn.SetDeadline(time.Now().Add(talkTime)); err != nil {
		return nil, err
	}
	t, err := greeted(conn)
	if err != nil {
		_ = conn.Close()
	}
	return t, err
}

func greeted(conn net.Conn) (*talk, error) {
	t := &talk{conn, bufio.NewReaderSize(conn, 4<<10)}
	return t, t.response()
}

// response reads up to an OK.
func (t *talk) response() error {
	for {
		line, err := t.in.ReadSlice('\n')
		switch {
		case err != nil:
			return err
		case line[0] == 'O':
			return nil
		case line[0] != 'D':
			return fmt.Errorf("%w: %q", errUnexpected, line)
		}
	}
}

func (t *talk) command(line string) error {
	if _, err := io.WriteString(t.conn, line); err != nil {
		return err
	}
	return t.response()
}

// end says BYE and waits until the other side has closed.
func (t *talk) end() error {
	defer func() { _ = t.conn.Close() }()
	if err := t.command("BYE\n"); err != nil {
		return err
	}
	_, err := t.in.ReadByte()
	if err == io.EOF {
		return nil
	}
	return errors.Join(err, errUnexpected)
}

// connectOnce connects, is greeted, and says BYE.
func (l *lab) connectOnce(socket string) error {
	t, err := dialTalk(socket)
	if err != nil {
		return err
	}
	return t.end()
}

// perSecond has workers call work again and again, and returns the number of calls per second,
// and in all.
func (l *lab) perSecond(workers int, work func(worker int) error) (rate float64, total int64) {
	var done atomic.Int64
	var all sync.WaitGroup
	start := time.Now()
	for worker := range workers {
		all.Go(func() {
			for time.Since(start) < loadTime {
				l.must(work(worker))
				done.Add(1)
			}
		})
	}
	all.Wait()
	return float64(done.Load()) / time.Since(start).Seconds(), done.Load()
}

func (l *lab) connectMany(on *lane, workers int) float64 {
	rate, _ := l.perSecond(workers, func(int) error { return l.connectOnce(on.agent.socket) })
	return rate
}

func (l *lab) commandMany(on *lane, workers int) float64 {
	rate, _ := l.commandRate(on, workers)
	return rate
}

func (l *lab) commandRate(on *lane, workers int) (rate float64, total int64) {
	talks := l.talks(on, workers)
	defer l.endTalks(talks)
	return l.perSecond(workers, func(worker int) error { return talks[worker].command("GETINFO version\n") })
}

// commandsAndCPU measures commands per second, and the forwarder's CPU time for them.
func (l *lab) commandsAndCPU(on *lane) float64 {
	before := on.cpu(l)
	rate, total := l.commandRate(on, atOnce)
	on.note(cpuPerCommands, (on.cpu(l)-before).Seconds()*cpuCommands/float64(total))
	return rate
}

func (l *lab) talks(on *lane, n int) []*talk {
	talks := make([]*talk, n)
	for i := range talks {
		var err error
		talks[i], err = dialTalk(on.agent.socket)
		l.must(err)
	}
	return talks
}

func (l *lab) endTalks(talks []*talk) {
	for _, t := range talks {
		l.must(t.end())
	}
}

// rssWhileOpen measures the resident set once the sessions that are served have had an answer.
// gpg-bridge lets those beyond its limit wait, connected but not yet greeted.
func (l *lab) rssWhileOpen(on *lane) float64 {
	var talks []*talk
	var waiting []net.Conn
	for range openSessions {
		conn, err := net.Dial("unix", on.agent.socket)
		l.must(err)
		l.must(conn.SetReadDeadline(time.Now().Add(greetTime)))
		if t, err := greeted(conn); err == nil {
			l.must(conn.SetDeadline(time.Time{}))
			l.must(t.command("GETINFO version\n"))
			talks = append(talks, t)
		} else {
			waiting = append(waiting, conn)
		}
	}
	rss := on.rss(l)
	for _, conn := range waiting {
		l.must(conn.Close())
	}
	l.endTalks(talks)
	return rss
}

// bulkToHost measures a long answer of the agent's.
func (l *lab) bulkToHost(on *lane) float64 {
	t, err := dialTalk(on.bulk.socket)
	l.must(err)
	start := time.Now()
	l.must(t.command("READKEY\n"))
	rate := bulkBytes / 1e6 / time.Since(start).Seconds()
	l.must(t.end())
	return rate
}

// bulkFromHost measures a long answer of the client's to an inquiry.
func (l *lab) bulkFromHost(on *lane) float64 {
	t, err := dialTalk(on.bulk.socket)
	l.must(err)
	start := time.Now()
	_, err = io.WriteString(t.conn, "PKDECRYPT\n")
	l.must(err)
	line, err := t.in.ReadString('\n')
	l.must(err)
	if !strings.HasPrefix(line, "INQUIRE") {
		l.must(errUnexpected)
	}
	l.must(sendBulk(t.conn))
	l.must(t.command("END\n"))
	rate := bulkBytes / 1e6 / time.Since(start).Seconds()
	l.must(t.end())
	return rate
}

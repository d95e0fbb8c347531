package feetech

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Line is what a bus talks over; *serial.Port is one.
type Line interface {
	// Read waits for at least one byte until ctx ends.
	Read(ctx context.Context, b []byte) (int, error)
	// Write hands all of b over, or fails; one that ctx cut short leaves the line unusable.
	Write(ctx context.Context, b []byte) error
	// Flush drops what has come and was not read.
	Flush()
}

// Config is how patient a bus is. Zero values are the defaults.
type Config struct {
	// Timeout bounds one question and its answer: by default 15 ms, the 2 ms that a servo needs and the 10 ms that an
	// adapter may hold bytes back, with a margin. Pseudo-terminals on a busy machine need more.
	Timeout time.Duration
	// Tries of a read, 3 by default. A write is never repeated.
	Tries int
}

// Counts are what went wrong on a bus since it was made, whether or not it was made good by another try.
type Counts struct {
	Asked    uint64 // transactions
	Timeouts uint64
	BadSums  uint64
	Resyncs  uint64 // runs of bytes that belonged to no packet
	Strays   uint64 // whole packets that answered nothing that was asked
	Verified uint64 // writes that were read back
}

// doubted is for how many transactions after a disturbance a write is read back although it was answered.
const doubted = 8

// Bus asks and answers, one transaction at a time; any goroutine may.
//
// An answer names its servo and nothing else, so a late or doubled one could be taken for that to a later question. Against
// that each read asks for a number of bytes that none of the last questions to the servo asked for, by beginning up to seven
// registers earlier than it was told to; an answer of another length is a stray. A request that comes back as an echo has
// two parameters; no read asks for two. A write's answer has none: whenever an old one could be about, the write is read
// back.
type Bus struct {
	line    Line
	timeout time.Duration
	tries   int

	turn   chan struct{} // holds a token while nobody asks
	dec    Decoder
	counts Counts
	doubt  int
	recent []question // the last ones, oldest first
	read   []byte
}

// question is one that an answer may still be about to.
type question struct {
	id     byte
	answer int // parameters of its answer
}

// remembered is how many questions back an answer is told from one to this.
const remembered = 6

// NewBus makes a bus over a line that nobody else uses.
func NewBus(line Line, c Config) *Bus {
	if c.Timeout <= 0 {
		c.Timeout = 15 * time.Millisecond
	}
	if c.Tries <= 0 {
		c.Tries = 3
	}
	b := &Bus{line: line, timeout: c.Timeout, tries: c.Tries, turn: make(chan struct{}, 1), read: make([]byte, 256)}
	b.turn <- struct{}{}
	return b
}

// take waits for the bus.
func (b *Bus) take(ctx context.Context) error {
	select {
	case <-b.turn:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (b *Bus) give() { b.turn <- struct{}{} }

// Counts is a copy of the counters.
func (b *Bus) Counts() Counts {
	<-b.turn
	defer b.give()
	c := b.counts
	c.BadSums, c.Resyncs = b.dec.badSums, b.dec.resyncs
	return c
}

// Ping asks whether a servo is there; a fault that it reports is a *Faulted.
func (b *Bus) Ping(ctx context.Context, id byte) error {
	if err := b.take(ctx); err != nil {
		return err
	}
	defer b.give()
	a, err := b.again(ctx, func() (Packet, error) { return b.ask(ctx, Packet{ID: id, Code: instructionPing}, 0) })
	if err != nil {
		return err
	}
	if a.Code != 0 {
		return &Faulted{ID: id, Fault: Fault(a.Code)}
	}
	return nil
}

// Read reads n registers from reg on. Faults that a servo reports beside its answer spoil no data: they are in register 65.
func (b *Bus) Read(ctx context.Context, id, reg byte, n int) ([]byte, error) {
	if n < 1 || n > maxParams-spread {
		return nil, &Refused{ID: id, Rule: fmt.Sprintf("%d registers cannot be read at once; 1 to %d can", n, maxParams-spread)}
	}
	if err := b.take(ctx); err != nil {
		return nil, err
	}
	defer b.give()
	return b.readHeld(ctx, id, reg, n)
}

func (b *Bus) readHeld(ctx context.Context, id, reg byte, n int) ([]byte, error) {
	var from int
	a, err := b.again(ctx, func() (Packet, error) {
		more := b.unlike(id, n)
		first := reg
		if from = 0; int(reg) >= more {
			first, from = reg-byte(more), more
		}
		return b.ask(ctx, Packet{ID: id, Code: instructionRead, Params: []byte{first, byte(n + more)}}, n+more)
	})
	if err != nil {
		return nil, err
	}
	return a.Params[from : from+n], nil
}

// spread is by how many registers a read may be longer than it was asked for.
const spread = 7

// unlike is by how many registers a read must be longer to be told from the last ones.
func (b *Bus) unlike(id byte, n int) int {
	for more := range spread {
		if n+more != 2 && !slices.Contains(b.recent, question{id, n + more}) {
			return more
		}
	}
	return spread // six are remembered, and one is two
}

// again asks up to the allowed number of times.
func (b *Bus) again(ctx context.Context, ask func() (Packet, error)) (Packet, error) {
	garbled := false
	for try := 1; ; try++ {
		a, err := ask()
		no, silent := err.(*NoReply) //nolint:errorlint // it is ours and not wrapped
		if !silent {
			return a, err
		}
		if garbled = garbled || no.Garbled; try == b.tries {
			return Packet{}, &NoReply{ID: no.ID, Tries: try, Within: b.timeout, Garbled: garbled}
		}
		if err := ctx.Err(); err != nil {
			return Packet{}, err
		}
	}
}

// Write writes registers of a servo: the torque switch (40), or a whole goal (41 to 47). Anything else, and a goal with a
// zero for "no limit" in it, is a *Refused. It is sent once: a lost answer is settled by reading back, and ends in success,
// a *NotWritten or an *Unverified. A servo that reports a fault beside its answer is a *Faulted.
func (b *Bus) Write(ctx context.Context, id, reg byte, data []byte) error {
	if err := allowed(id, reg, data); err != nil {
		return err
	}
	if err := b.take(ctx); err != nil {
		return err
	}
	defer b.give()
	stale := b.mayBeStale(id)
	a, err := b.ask(ctx, Packet{ID: id, Code: instructionWrite, Params: append([]byte{reg}, data...)}, 0)
	_, silent := err.(*NoReply) //nolint:errorlint // it is ours and not wrapped
	if err != nil && !silent {
		return err
	}
	if silent || stale || b.doubt > 0 {
		if err := b.verify(ctx, id, reg, data); err != nil {
			return err
		}
	}
	if a.Code != 0 {
		return &Faulted{ID: id, Fault: Fault(a.Code)}
	}
	return nil
}

// verify reads back what was written.
func (b *Bus) verify(ctx context.Context, id, reg byte, data []byte) error {
	b.counts.Verified++
	got, err := b.readHeld(ctx, id, reg, len(data))
	if err != nil {
		return &Unverified{ID: id, Reg: reg, Err: err}
	}
	if !bytes.Equal(got, data) {
		return &NotWritten{ID: id, Reg: reg, Want: data, Got: got}
	}
	return nil
}

// mayBeStale reports whether an old answer without parameters could be taken for the next one of this servo.
func (b *Bus) mayBeStale(id byte) bool { return slices.Contains(b.recent, question{id, 0}) }

// SyncWrite writes the same registers of several servos, which take them at the same moment. None answers, so each is read
// back. What may be written is as for Write; when anything is refused nothing is sent.
func (b *Bus) SyncWrite(ctx context.Context, reg byte, each []Data) error {
	if len(each) == 0 {
		return nil
	}
	n := len(each[0].Bytes)
	params := []byte{reg, byte(n)}
	for _, e := range each {
		if err := allowed(e.ID, reg, e.Bytes); err != nil {
			return err
		}
		if len(e.Bytes) != n {
			return &Refused{ID: e.ID, Rule: fmt.Sprintf("one packet writes as many bytes to every servo; %d and %d are asked for", n, len(e.Bytes))}
		}
		params = append(append(params, e.ID), e.Bytes...)
	}
	if len(params) > maxParams {
		return &Refused{ID: broadcast, Rule: fmt.Sprintf("%d servos do not fit into one packet", len(each))}
	}
	if err := b.take(ctx); err != nil {
		return err
	}
	defer b.give()
	if err := b.send(ctx, Packet{ID: broadcast, Code: instructionSyncWrite, Params: params}); err != nil {
		return err
	}
	errs := make([]error, 0, len(each))
	for _, e := range each {
		errs = append(errs, b.verify(ctx, e.ID, reg, e.Bytes))
	}
	return errors.Join(errs...)
}

// Data is what SyncWrite writes to one servo.
type Data struct {
	ID    byte
	Bytes []byte
}

// send sends a packet after everything that came uncalled for is dropped.
func (b *Bus) send(ctx context.Context, p Packet) error {
	ctx, cancel := context.WithTimeout(ctx, b.timeout)
	defer cancel()
	b.counts.Asked++
	b.line.Flush()
	b.dec.Reset()
	return b.line.Write(ctx, Encode(p))
}

// ask sends a packet and waits for the answer with so many parameters.
func (b *Bus) ask(parent context.Context, p Packet, answer int) (Packet, error) {
	if err := parent.Err(); err != nil {
		return Packet{}, err
	}
	ctx, cancel := context.WithTimeout(parent, b.timeout)
	defer cancel()
	if err := b.send(ctx, p); err != nil {
		return Packet{}, err
	}
	b.remember(question{p.ID, answer})
	was := b.troubles()
	a, err := b.await(ctx, p, answer)
	switch {
	case err == nil:
	case parent.Err() != nil:
		b.doubt = doubted
		return Packet{}, parent.Err()
	case ctx.Err() != nil:
		b.counts.Timeouts++
		err = &NoReply{ID: p.ID, Tries: 1, Within: b.timeout, Garbled: b.troubles() != was}
	}
	if err != nil || b.troubles() != was {
		b.doubt = doubted
	} else if b.doubt > 0 {
		b.doubt--
	}
	return a, err
}

// await reads until the answer is there. An echo of the request is passed over.
func (b *Bus) await(ctx context.Context, p Packet, answer int) (Packet, error) {
	for echo := true; ; {
		for {
			a, ok := b.dec.Next()
			if !ok {
				break
			}
			switch {
			case echo && a.ID == p.ID && a.Code == p.Code && bytes.Equal(a.Params, p.Params):
				echo = false
			case a.ID == p.ID && len(a.Params) == answer:
				return a, nil
			default:
				b.counts.Strays++
			}
		}
		n, err := b.line.Read(ctx, b.read)
		if err != nil {
			return Packet{}, err
		}
		b.dec.Feed(b.read[:n])
	}
}

// troubles grows with every disturbance.
func (b *Bus) troubles() uint64 { return b.dec.badSums + b.dec.resyncs + b.counts.Strays }

func (b *Bus) remember(q question) {
	if len(b.recent) == remembered {
		b.recent = append(b.recent[:0], b.recent[1:]...)
	}
	b.recent = append(b.recent, q)
}

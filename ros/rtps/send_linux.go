package rtps

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"unsafe"
)

// rawSender sends datagrams with calls that the scheduler does not see. They take some microseconds and never block, and
// being seen costs more: each wakes the runtime's monitor, which then looks around every 20 µs for milliseconds.
type rawSender struct {
	rc   syscall.RawConn
	pool sync.Pool // of *rawPacket
}

type rawPacket struct {
	b     []byte
	to    syscall.RawSockaddrInet4
	write func(fd uintptr) (done bool)
}

func newRawSender(c *net.UDPConn) (*rawSender, error) {
	rc, err := c.SyscallConn()
	if err != nil {
		return nil, err
	}
	s := &rawSender{rc: rc}
	s.pool.New = func() any {
		p := &rawPacket{to: syscall.RawSockaddrInet4{Family: syscall.AF_INET}}
		p.write = p.send
		return p
	}
	return s, nil
}

// send waits while the socket's buffer is full. That a datagram could not be sent is not told: UDP may lose any.
func (s *rawSender) send(b []byte, to netip.AddrPort) {
	if len(b) == 0 || !to.Addr().Is4() {
		return
	}
	p := s.pool.Get().(*rawPacket)
	p.b = b
	p.to.Addr = to.Addr().As4()
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&p.to.Port))[:], to.Port())
	_ = s.rc.Write(p.write) // closed
	p.b = nil
	s.pool.Put(p)
}

func (p *rawPacket) send(fd uintptr) (done bool) {
	for {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p.b))), uintptr(len(p.b)),
			syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, uintptr(unsafe.Pointer(&p.to)), unsafe.Sizeof(p.to))
		if errno != syscall.EINTR {
			return errno != syscall.EAGAIN
		}
	}
}

package rtps

import (
	"encoding/binary"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"unsafe"
)

// rawSender sends datagrams with calls that the scheduler does not see. They take some microseconds and never block, and
// being seen costs more: each wakes the runtime's monitor, which then looks around every 20 µs for milliseconds.
type rawSender struct {
	rc   syscall.RawConn
	pool sync.Pool   // of *rawPacket
	slow atomic.Bool // trains are not possible
}

type rawPacket struct {
	b     []byte
	to    syscall.RawSockaddrInet4
	write func(fd uintptr) (done bool)

	segment int // size of each datagram of a train; 0 is one datagram
	msg     syscall.Msghdr
	iov     syscall.Iovec
	control segmentControl
	errno   syscall.Errno
}

// segmentControl is the control message that makes the system cut a train into datagrams (UDP_SEGMENT, Linux 4.18).
type segmentControl struct {
	header syscall.Cmsghdr
	size   uint16
	_      [6]byte
}

const (
	solUDP     = 17
	udpSegment = 103
)

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

// sendTrain sends datagrams of size bytes each that lie one after the other.
func (s *rawSender) sendTrain(b []byte, size int, to netip.AddrPort) bool {
	if s.slow.Load() || !to.Addr().Is4() {
		return false
	}
	p := s.pool.Get().(*rawPacket)
	p.b, p.segment = b, size
	p.to.Addr = to.Addr().As4()
	binary.BigEndian.PutUint16((*[2]byte)(unsafe.Pointer(&p.to.Port))[:], to.Port())
	p.iov.Base = unsafe.SliceData(b)
	p.iov.SetLen(len(b))
	p.control.size = uint16(size)
	p.control.header = syscall.Cmsghdr{Level: solUDP, Type: udpSegment}
	p.control.header.SetLen(syscall.CmsgLen(2))
	p.msg = syscall.Msghdr{
		Name: (*byte)(unsafe.Pointer(&p.to)), Namelen: uint32(unsafe.Sizeof(p.to)), Iov: &p.iov, Iovlen: 1,
		Control: (*byte)(unsafe.Pointer(&p.control)),
	}
	p.msg.SetControllen(int(unsafe.Sizeof(p.control)))
	err := s.rc.Write(p.write)
	errno := p.errno
	p.b, p.segment, p.iov.Base, p.errno = nil, 0, nil, 0
	s.pool.Put(p)
	switch errno {
	case syscall.EINVAL, syscall.EIO, syscall.EMSGSIZE, syscall.ENOPROTOOPT, syscall.EOPNOTSUPP:
		s.slow.Store(true) // an old system, or a card that cannot count checksums
		return false
	default: // sent, or lost as datagrams are
	}
	return err == nil
}

func (p *rawPacket) send(fd uintptr) (done bool) {
	for p.segment > 0 {
		_, _, p.errno = syscall.RawSyscall(syscall.SYS_SENDMSG, fd, uintptr(unsafe.Pointer(&p.msg)), syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL)
		if p.errno != syscall.EINTR {
			return p.errno != syscall.EAGAIN
		}
	}
	for {
		_, _, errno := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p.b))), uintptr(len(p.b)),
			syscall.MSG_DONTWAIT|syscall.MSG_NOSIGNAL, uintptr(unsafe.Pointer(&p.to)), unsafe.Sizeof(p.to))
		if errno != syscall.EINTR {
			return errno != syscall.EAGAIN
		}
	}
}

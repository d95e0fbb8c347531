package rtps

import (
	"encoding/binary"
	"net"
	"net/netip"
	"syscall"
	"time"
	"unsafe"
)

// readAhead is how much of a large sample must be missing for its pieces to be collected: a core that went to sleep and
// woke for each of them, some 30 µs apart on the loopback, would spend more on that than on the pieces.
const (
	readAhead = 256 << 10
	collect   = 200 * time.Microsecond
)

// readAll gives what comes to f until the socket is closed. f says how many bytes of a sample in pieces are yet to come.
func readAll(c *net.UDPConn, f func(b []byte, from netip.AddrPort) (ahead int)) {
	rc, err := c.SyscallConn()
	if err != nil {
		return
	}
	r := &rawReader{buf: make([]byte, 65536), f: f}
	for rc.Read(r.read) == nil {
	}
}

type rawReader struct {
	buf   []byte
	from  syscall.RawSockaddrInet4
	f     func(b []byte, from netip.AddrPort) (ahead int)
	ahead int
}

// read takes all that is there. It says false, so that the runtime waits for more.
func (r *rawReader) read(fd uintptr) (done bool) {
	for napped := false; ; {
		size := uint32(unsafe.Sizeof(r.from))
		n, _, errno := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(&r.buf[0])), uintptr(len(r.buf)),
			syscall.MSG_DONTWAIT, uintptr(unsafe.Pointer(&r.from)), uintptr(unsafe.Pointer(&size)))
		switch {
		case errno == syscall.EINTR:
		case errno == syscall.EAGAIN && r.ahead >= readAhead && !napped:
			napped = true
			ts := syscall.NsecToTimespec(int64(collect))
			// The raw call, which the scheduler does not see: what it does to take the processor from a thread that
			// waits costs more than the wait.
			_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
		case errno == syscall.EAGAIN:
			r.ahead = 0
			return false
		case errno != 0:
			return true // of an earlier datagram's refusal, or closed, which Read says next
		default:
			napped = false
			port := (*[2]byte)(unsafe.Pointer(&r.from.Port))
			from := netip.AddrPortFrom(netip.AddrFrom4(r.from.Addr), binary.BigEndian.Uint16(port[:]))
			r.ahead = r.f(r.buf[:n], from)
		}
	}
}

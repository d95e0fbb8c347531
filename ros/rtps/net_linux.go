package rtps

import (
	"context"
	"net"
	"net/netip"
	"syscall"
)

// socketOptions makes buffers large: a megabyte comes as a burst. FORCE works for root alone, beyond the system's limit.
func socketOptions(fd uintptr, shared bool) error {
	s := int(fd)
	for _, o := range [...][2]int{{syscall.SO_RCVBUFFORCE, syscall.SO_RCVBUF}, {syscall.SO_SNDBUFFORCE, syscall.SO_SNDBUF}} {
		if syscall.SetsockoptInt(s, syscall.SOL_SOCKET, o[0], socketBuffer) != nil {
			if err := syscall.SetsockoptInt(s, syscall.SOL_SOCKET, o[1], socketBuffer); err != nil {
				return err
			}
		}
	}
	if !shared {
		return nil
	}
	const multicastAll = 49 // IP_MULTICAST_ALL: off, only groups that this very socket joined
	if err := syscall.SetsockoptInt(s, syscall.IPPROTO_IP, multicastAll, 0); err != nil {
		return err
	}
	return syscall.SetsockoptInt(s, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
}

func joinGroup(c *net.UDPConn, index int) error {
	return control(c, func(fd int) error {
		return syscall.SetsockoptIPMreqn(fd, syscall.IPPROTO_IP, syscall.IP_ADD_MEMBERSHIP,
			&syscall.IPMreqn{Multiaddr: multicastGroup.As4(), Ifindex: int32(index)})
	})
}

// speakGroup is a socket whose multicast leaves by one interface, and is heard on this host too.
func speakGroup(index int, from netip.Addr) (*net.UDPConn, error) {
	lc := net.ListenConfig{}
	pc, err := lc.ListenPacket(context.Background(), "udp4", netip.AddrPortFrom(from, 0).String())
	if err != nil {
		return nil, err
	}
	c := pc.(*net.UDPConn)
	err = control(c, func(fd int) error {
		if err := syscall.SetsockoptIPMreqn(fd, syscall.IPPROTO_IP, syscall.IP_MULTICAST_IF, &syscall.IPMreqn{Ifindex: int32(index)}); err != nil {
			return err
		}
		if err := syscall.SetsockoptByte(fd, syscall.IPPROTO_IP, syscall.IP_MULTICAST_TTL, 1); err != nil {
			return err
		}
		return syscall.SetsockoptByte(fd, syscall.IPPROTO_IP, syscall.IP_MULTICAST_LOOP, 1)
	})
	if err != nil {
		_ = c.Close() // the first error says it
		return nil, err
	}
	return c, nil
}

func control(c *net.UDPConn, f func(fd int) error) error {
	rc, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var ferr error
	if err := rc.Control(func(fd uintptr) { ferr = f(int(fd)) }); err != nil {
		return err
	}
	return ferr
}

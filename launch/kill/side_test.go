package kill

import (
	"errors"
	"sync"

	"viad/ros"
)

// split is a node whose actions are served by another process than all else, which can die by itself.
type split struct {
	ros.Node
	open func() (ros.Node, error)

	mu     sync.Mutex
	other  ros.Node // nil while it is dead
	served []*served
}

// served is an action that comes back with its process.
type served struct {
	s       *split
	action  ros.Action
	handler ros.ActionHandler
	closer  ros.Closer
	over    bool
}

// ServeAction serves it in the other process.
func (s *split) ServeAction(a ros.Action, h ros.ActionHandler) (ros.Closer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, err := s.other.ServeAction(a, h)
	if err != nil {
		return nil, err
	}
	v := &served{s, a, h, c, false}
	s.served = append(s.served, v)
	return v, nil
}

// Close ends the serving for good.
func (v *served) Close() error {
	v.s.mu.Lock()
	defer v.s.mu.Unlock()
	v.over = true
	if v.s.other == nil {
		return nil
	}
	return v.closer.Close()
}

// Close ends both processes.
func (s *split) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	err := s.Node.Close()
	if s.other != nil {
		err = errors.Join(err, s.other.Close())
		s.other = nil
	}
	return err
}

// die ends the process of the actions.
func (s *split) die() error {
	s.mu.Lock()
	other := s.other
	s.other = nil
	s.mu.Unlock()
	return other.Close()
}

// revive starts it again.
func (s *split) revive() error {
	n, err := s.open()
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.other = n
	for _, v := range s.served {
		if v.over {
			continue
		}
		c, e := n.ServeAction(v.action, v.handler)
		err = errors.Join(err, e)
		v.closer = c
	}
	return err
}

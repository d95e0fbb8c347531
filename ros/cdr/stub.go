package cdr

// Writer writes.
type Writer struct{}

// Reader reads.
type Reader struct{}

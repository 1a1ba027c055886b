//go:build !linux && !darwin

package http1

const supported = false

func receive(uintptr, []byte) (n int, again bool, err error) { return 0, false, nil }

func ended(uintptr) bool { return false }

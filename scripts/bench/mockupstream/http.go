package main

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"strconv"
)

// request is one request; its slices are valid until the next one.
type request struct {
	post      bool
	path      string
	length    int
	chunked   bool
	shut      bool // Connection: close
	anthropic bool
	expect    bool
	head      []byte
	body      []byte
}

// converse answers the requests on a connection until it ends.
func (u *upstream) converse(c net.Conn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 64<<10)
	q := &request{body: make([]byte, 0, 4096)}
	for q.readHead(r) {
		if q.expect {
			if _, err := c.Write([]byte("HTTP/1.1 100 Continue\r\n\r\n")); err != nil {
				return
			}
		}
		if q.readBody(r) != nil || !u.answer(c, q) || q.shut {
			return
		}
	}
}

// readHead reads the request line and the headers; it reports whether there was a request.
func (q *request) readHead(r *bufio.Reader) bool {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return false
	}
	q.head = append(q.head[:0], line...)
	f := bytes.Fields(q.head)
	if len(f) < 3 {
		return false
	}
	q.post, q.path = string(f[0]) == "POST", string(f[1])
	q.length, q.chunked, q.shut, q.anthropic, q.expect = 0, false, false, false, false
	for {
		line, err = r.ReadSlice('\n')
		if err != nil {
			return false
		}
		q.head = append(q.head, line...)
		line = bytes.TrimRight(line, "\r\n")
		if len(line) == 0 {
			return true
		}
		name, val, ok := bytes.Cut(line, []byte(":"))
		if !ok || !q.header(name, bytes.TrimSpace(val)) {
			return false
		}
	}
}

func (q *request) header(name, val []byte) bool {
	switch {
	case equal(name, "content-length"):
		n, err := strconv.Atoi(string(val))
		q.length = n
		return err == nil && n >= 0
	case equal(name, "transfer-encoding"):
		q.chunked = bytes.Contains(bytes.ToLower(val), []byte("chunked"))
	case equal(name, "connection"):
		q.shut = equal(val, "close")
	case equal(name, "anthropic-version"):
		q.anthropic = true
	case equal(name, "expect"):
		q.expect = true
	}
	return true
}

func (q *request) readBody(r *bufio.Reader) error {
	q.body = q.body[:0]
	if q.chunked {
		return q.readChunks(r)
	}
	if cap(q.body) < q.length {
		q.body = make([]byte, 0, q.length)
	}
	q.body = q.body[:q.length]
	_, err := io.ReadFull(r, q.body)
	return err
}

func (q *request) readChunks(r *bufio.Reader) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(bytes.TrimSpace(line)), 16, 31)
		if err != nil {
			return err
		}
		at := len(q.body)
		q.body = append(q.body, make([]byte, n)...)
		if _, err := io.ReadFull(r, q.body[at:]); err != nil {
			return err
		}
		if _, err := r.ReadSlice('\n'); err != nil || n == 0 {
			return err
		}
	}
}

// equal compares without regard to the case of ASCII letters.
func equal(a []byte, lower string) bool {
	if len(a) != len(lower) {
		return false
	}
	for i, c := range a {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

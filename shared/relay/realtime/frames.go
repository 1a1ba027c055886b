package realtime

import (
	"encoding/binary"
	"net"
	"unicode/utf8"

	"github.com/gorilla/websocket"

	"gateway/shared/relay/session"
)

// inspected is a connection with frames that are checked on arrival, for faults that the library
// ignores or reports with another code: lengths that are not in their shortest form, a close of
// one byte, a reason that is not UTF-8 (RFC 6455, 5.2, 5.5.1 and 8.1).
type inspected struct {
	net.Conn
	frames frames
	broken *session.Ended           // why reading has stopped
	tell   func(why *session.Ended) // sends the reason to the peer, once
}

// Read implements net.Conn. Bytes before a faulty frame are still read.
func (c *inspected) Read(p []byte) (n int, err error) {
	if c.broken == nil {
		n, err = c.Conn.Read(p)
		good, why := c.frames.feed(p[:n])
		if why == nil {
			return n, err
		}
		c.broken = why
		if good > 0 {
			return good, nil
		}
	}
	if c.tell != nil {
		c.tell(c.broken)
		c.tell = nil
	}
	return 0, c.broken
}

// CloseWrite closes the write side, if the connection supports it.
func (c *inspected) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return net.ErrClosed
}

// maxControl limits the payload of a control frame, in bytes.
const maxControl = 125

const opClose = 8

// frames parses the frames of the peer.
type frames struct {
	response bool   // the head of the handshake's response comes first
	off      bool   // it is not an upgrade: no frames follow
	line     []byte // the beginning of it
	ended    int    // how much of its end was received

	head    [14]byte
	have    int    // bytes of head
	left    uint64 // bytes of the payload not yet received
	closing bool   // it is that of a close
	reason  []byte
}

// feed checks received bytes; good is the number of bytes before a faulty frame.
func (f *frames) feed(p []byte) (good int, why *session.Ended) {
	i := f.skipResponse(p)
	for begin := i; i < len(p); {
		if f.have < 2 || f.have < f.headSize() {
			if f.have == 0 {
				begin = i
			}
			f.head[f.have] = p[i]
			f.have++
			i++
			if f.have < 2 || f.have < f.headSize() {
				continue
			}
			if why = f.readHead(); why != nil {
				return begin, why
			}
		} else {
			n := int(min(f.left, uint64(len(p)-i)))
			if f.closing {
				f.reason = append(f.reason, p[i:i+n]...)
			}
			f.left -= uint64(n)
			i += n
		}
		if f.left == 0 {
			if why = f.readClose(); why != nil {
				return begin, why
			}
			f.have = 0
		}
	}
	return len(p), nil
}

// skipResponse returns the index after the head of a response.
func (f *frames) skipResponse(p []byte) (i int) {
	const end, switching = "\r\n\r\n", "HTTP/1.1 101"
	for ; f.response && i < len(p); i++ {
		if len(f.line) < len(switching) {
			if f.line = append(f.line, p[i]); p[i] != switching[len(f.line)-1] {
				f.response, f.off = false, true
			}
		}
		switch {
		case p[i] == end[f.ended]:
			f.ended++
		case p[i] == end[0]:
			f.ended = 1
		default:
			f.ended = 0
		}
		f.response = f.response && f.ended < len(end)
	}
	if f.off {
		return len(p)
	}
	return i
}

// headSize returns the length of the frame head that starts with these two bytes.
func (f *frames) headSize() int {
	n := 2
	switch f.head[1] & 0x7f {
	case 126:
		n += 2
	case 127:
		n += 8
	}
	if f.head[1]&0x80 != 0 {
		n += 4
	}
	return n
}

func (f *frames) readHead() *session.Ended {
	least := uint64(0)
	switch f.left = uint64(f.head[1] & 0x7f); f.left {
	case 126:
		f.left, least = uint64(binary.BigEndian.Uint16(f.head[2:])), 126
	case 127:
		f.left, least = binary.BigEndian.Uint64(f.head[2:]), 1<<16
	}
	isClose := f.head[0]&0x0f == opClose
	f.closing, f.reason = isClose && f.left <= maxControl, f.reason[:0]
	switch {
	case f.left < least:
		return &session.Ended{Code: websocket.CloseProtocolError, Reason: "the length of a frame must be encoded in its shortest form"}
	case isClose && f.left == 1:
		return &session.Ended{Code: websocket.CloseProtocolError, Reason: "a close frame must have a code of two bytes or none"}
	}
	return nil
}

// readClose checks the reason of a complete close frame; the library checks its code.
func (f *frames) readClose() *session.Ended {
	if !f.closing || len(f.reason) < 2 {
		return nil
	}
	f.closing = false
	if f.head[1]&0x80 != 0 {
		mask := f.head[2:6]
		for i := range f.reason {
			f.reason[i] ^= mask[i%len(mask)]
		}
	}
	if !utf8.Valid(f.reason[2:]) {
		return &session.Ended{Code: session.NotUTF8, Reason: "the reason of a close must be UTF-8"}
	}
	return nil
}

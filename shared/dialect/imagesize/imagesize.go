// Package imagesize reads the width and height of an image from its header, without decoding it.
// It must not import decoders of images: functions that run for every request link it.
package imagesize

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
)

// maxHeader bounds how much of an image is decoded to find its size. A JPEG may have metadata
// before its size.
const maxHeader = 96 << 10

// short is enough for the formats that begin with their size.
const short = 48

// PixelsOfBase64 returns the number of pixels of a PNG, JPEG, WebP or GIF in base64, which may be
// that of a data URL; ok is false for anything else.
func PixelsOfBase64(s string) (pixels int64, ok bool) {
	if strings.HasPrefix(s, "data:") {
		if _, s, ok = strings.Cut(s, ";base64,"); !ok {
			return 0, false
		}
	}
	head := decode(s, short)
	if len(head) > 2 && head[0] == 0xff && head[1] == 0xd8 {
		head = decode(s, maxHeader)
	}
	return Pixels(head)
}

// decode decodes the beginning of s, up to n bytes.
func decode(s string, n int) []byte {
	s = strings.TrimRight(s[:min(len(s), n/3*4)], "=")
	out := make([]byte, base64.RawStdEncoding.DecodedLen(len(s)))
	n, _ = base64.RawStdEncoding.Decode(out, []byte(s)) // what follows the first wrong character is not read
	return out[:n]
}

// Pixels returns the number of pixels of an image by its first bytes.
func Pixels(head []byte) (pixels int64, ok bool) {
	var width, height int64
	switch {
	case has(head, 0, "\x89PNG\r\n\x1a\n") && has(head, 12, "IHDR") && len(head) >= 24:
		width, height = int64(binary.BigEndian.Uint32(head[16:])), int64(binary.BigEndian.Uint32(head[20:]))
	case has(head, 0, "GIF8") && len(head) >= 10:
		width, height = int64(binary.LittleEndian.Uint16(head[6:])), int64(binary.LittleEndian.Uint16(head[8:]))
	case has(head, 0, "RIFF") && has(head, 8, "WEBP") && len(head) >= 30:
		width, height = webp(head)
	case has(head, 0, "\xff\xd8"):
		width, height = frame(head[2:])
	}
	if width <= 0 || height <= 0 || width > maxSide || height > maxSide {
		return 0, false
	}
	return width * height, true
}

// maxSide bounds a side, so that a forged header does not become money.
const maxSide = 1 << 16

func has(b []byte, at int, text string) bool {
	return len(b) >= at+len(text) && string(b[at:at+len(text)]) == text
}

// webp reads the canvas of the three forms of WebP.
func webp(head []byte) (width, height int64) {
	uint24 := func(at int) int64 {
		return int64(head[at]) | int64(head[at+1])<<8 | int64(head[at+2])<<16
	}
	switch string(head[12:16]) {
	case "VP8X":
		return uint24(24) + 1, uint24(27) + 1
	case "VP8L":
		bits := int64(binary.LittleEndian.Uint32(head[21:]))
		return bits&0x3fff + 1, bits>>14&0x3fff + 1
	case "VP8 ":
		return int64(binary.LittleEndian.Uint16(head[26:]) & 0x3fff), int64(binary.LittleEndian.Uint16(head[28:]) & 0x3fff)
	}
	return 0, 0
}

// frame reads the first frame header of a JPEG after the start of the image.
func frame(b []byte) (width, height int64) {
	for len(b) >= 4 && b[0] == 0xff {
		marker := b[1]
		if marker == 0xff { // fill
			b = b[1:]
			continue
		}
		if marker >= 0xd0 && marker <= 0xd7 || marker == 0x01 { // without a length
			b = b[2:]
			continue
		}
		length := int(binary.BigEndian.Uint16(b[2:])) + 2
		if start := marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc; start {
			if len(b) < 9 {
				return 0, 0
			}
			return int64(binary.BigEndian.Uint16(b[7:])), int64(binary.BigEndian.Uint16(b[5:]))
		}
		if length < 4 || length > len(b) {
			return 0, 0
		}
		b = b[length:]
	}
	return 0, 0
}

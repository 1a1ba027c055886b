package imagesize

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"testing"
)

// TestPixelsAreReadFromHeaders reads the headers of images that the encoders of the standard
// library write, and of the three forms of WebP.
func TestPixelsAreReadFromHeaders(t *testing.T) {
	t.Parallel()
	picture := image.NewPaletted(image.Rect(0, 0, 640, 480), color.Palette{color.Black})
	files := map[string][]byte{
		"webp, lossy":    append([]byte("RIFF\x00\x00\x00\x00WEBPVP8 \x00\x00\x00\x00\x00\x00\x00\x9d\x01\x2a"), 0x80, 0x02, 0xe0, 0x01, 0, 0),
		"webp, lossless": append([]byte("RIFF\x00\x00\x00\x00WEBPVP8L\x00\x00\x00\x00\x2f"), 0x7f, 0xc2, 0x77, 0, 0, 0, 0, 0, 0, 0),
		"webp, extended": append([]byte("RIFF\x00\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00"), 0x7f, 0x02, 0, 0xdf, 0x01, 0, 0),
	}
	for name, write := range map[string]func(*bytes.Buffer) error{
		"png":  func(b *bytes.Buffer) error { return png.Encode(b, picture) },
		"gif":  func(b *bytes.Buffer) error { return gif.Encode(b, picture, nil) },
		"jpeg": func(b *bytes.Buffer) error { return jpeg.Encode(b, picture, nil) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		files[name] = b.Bytes()
	}
	plain := files["jpeg"]
	metadata := append([]byte{0xff, 0xd8, 0xff, 0xff, 0xe1, 0xff, 0xff}, make([]byte, 0xfffd)...)
	files["jpeg with metadata"] = append(metadata, plain[2:]...)
	for name, file := range files {
		text := base64.StdEncoding.EncodeToString(file)
		for _, s := range []string{text, "data:image/x;base64," + text} {
			if got, ok := PixelsOfBase64(s); !ok || got != 640*480 {
				t.Errorf("%s: %d %t", name, got, ok)
			}
		}
		for n := range min(len(file), 60) { // no beginning is out of range
			if got, ok := Pixels(file[:n]); ok && got != 640*480 {
				t.Errorf("%s, %d bytes: %d", name, n, got)
			}
		}
	}
	for name, s := range map[string]string{
		"empty": "", "text": "SGVsbG8=", "no base64": "\x89PNG", "a URL": "https://a.example/b.png", "data without base64": "data:image/png,x",
		"no width": base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x00\x00\x00\x00\x00\x00\x01\x00")),
		"too wide": base64.StdEncoding.EncodeToString([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x7f\xff\xff\xff\x00\x00\x01\x00")),
		"endless":  base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xff, 0xd8}, 1000)),
	} {
		if got, ok := PixelsOfBase64(s); ok {
			t.Errorf("%s: %d", name, got)
		}
	}
}

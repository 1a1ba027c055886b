package cli

import (
	"io/fs"
	"unsafe"

	"golang.org/x/sys/windows"
)

// SystemKeyring returns nil: on Windows the file is the key store, encrypted by the system
// for its user.
func SystemKeyring(func(string) string) Keyring { return nil }

// private reports true: the modes of Windows say nothing, and the content is encrypted.
func private(fs.FileInfo) bool { return true }

// protect encrypts with the key of the user (DPAPI).
func protect(raw []byte) ([]byte, error) {
	var out windows.DataBlob
	err := windows.CryptProtectData(blob(raw), nil, nil, 0, nil, windows.CRYPTPROTECT_UI_FORBIDDEN, &out)
	return taken(out), err
}

func unprotect(raw []byte) ([]byte, error) {
	var out windows.DataBlob
	err := windows.CryptUnprotectData(blob(raw), nil, nil, 0, nil, windows.CRYPTPROTECT_UI_FORBIDDEN, &out)
	return taken(out), err
}

func blob(raw []byte) *windows.DataBlob {
	if len(raw) == 0 {
		return &windows.DataBlob{}
	}
	return &windows.DataBlob{Size: uint32(len(raw)), Data: &raw[0]}
}

// taken copies a blob of the system and frees it.
func taken(b windows.DataBlob) []byte {
	if b.Data == nil {
		return nil
	}
	defer windows.LocalFree(windows.Handle(unsafe.Pointer(b.Data))) //nolint:errcheck // nothing could be done
	return append([]byte(nil), unsafe.Slice(b.Data, b.Size)...)
}

package segment

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/axiomhq/hyperloglog"

	"gateway/shared/usage"
)

// Hour is one hour in microseconds, the time step of cubes.
const Hour = int64(3600) * 1_000_000

// maxListedIDs is the number of records up to which a cube contains the ids. Larger
// segments read them from the file.
const maxListedIDs = 1 << 16

// UsersKey identifies the users of one workspace in one hour.
type UsersKey struct {
	Hour      int64 // start of the hour, microseconds since 1970
	Workspace string
}

// Cube is the summary of a segment that suffices for most queries.
type Cube struct {
	Cells *Table
	Users map[UsersKey]*hyperloglog.Sketch // distinct end users
	ids   []uint64                         // hashes of the event ids, sorted; nil above maxListedIDs
	bytes int64
}

// cellKey is the hour of a cell and the codes of its dimensions.
type cellKey struct {
	hour int64
	dims [NumCubeDims]uint32
}

type cell struct {
	count, first, last int64
	sums               [NumInts]int64 // sums[Start] is unused
	durations          Histogram
}

// cubeBuilder builds a segment's cube, record by record.
type cubeBuilder struct {
	strings map[string]uint32
	values  []string
	cells   map[cellKey]*cell
	users   map[UsersKey]*hyperloglog.Sketch
	ids     []uint64
	total   int

	// The cell of the last record; the next record usually belongs to it too.
	last    *cell
	lastKey cellKey
	lastDim [NumCubeDims]string
}

func newCubeBuilder() *cubeBuilder {
	return &cubeBuilder{
		strings: make(map[string]uint32),
		cells:   make(map[cellKey]*cell),
		users:   make(map[UsersKey]*hyperloglog.Sketch),
	}
}

func (b *cubeBuilder) code(s string) uint32 {
	c, ok := b.strings[s]
	if !ok {
		c = uint32(len(b.values))
		b.strings[s] = c
		b.values = append(b.values, s)
	}
	return c
}

// dimension returns a record's value of a dimension.
func dimension(r *usage.Record, d Dim) string {
	switch d {
	case Workspace:
		return r.Workspace
	case WorkspaceSlug:
		return r.WorkspaceSlug
	case Key:
		return r.KeyID
	case KeyType:
		return r.KeyType
	case Provider:
		return r.Provider
	case ProviderSlug:
		return r.ProviderSlug
	case Model:
		return r.Model
	case Config:
		return r.ConfigSlug
	case Prompt:
		return r.PromptSlug
	case CacheStatus:
		return r.CacheStatus
	case Endpoint:
		return r.Endpoint
	case Status:
		return decimal(int64(r.ClientStatus))
	case Retries:
		return decimal(int64(r.RetryCount))
	case Fallback:
		if r.Fallback() {
			return "1"
		}
	}
	return ""
}

func withUser(r *usage.Record) int64 {
	if r.EndUser == "" {
		return 0
	}
	return 1
}

// decimal formats a number; small ones do not allocate.
func decimal(n int64) string {
	if n >= 0 && n < int64(len(decimals)) {
		return decimals[n]
	}
	return strconv.FormatInt(n, 10)
}

var decimals = func() (d [600]string) {
	for i := range d {
		d[i] = strconv.Itoa(i)
	}
	return d
}()

// cell returns the cell that a record belongs to.
func (b *cubeBuilder) cell(r *usage.Record, hour, start int64) *cell {
	k, same := cellKey{hour: hour}, b.last != nil && b.lastKey.hour == hour
	for d := range NumCubeDims {
		v := dimension(r, d)
		if b.last != nil && v == b.lastDim[d] {
			k.dims[d] = b.lastKey.dims[d]
			continue
		}
		same = false
		k.dims[d], b.lastDim[d] = b.code(v), v
	}
	if same {
		return b.last
	}
	c := b.cells[k]
	if c == nil {
		c = &cell{first: start, last: start}
		b.cells[k] = c
	}
	b.last, b.lastKey = c, k
	return c
}

func (b *cubeBuilder) add(r *usage.Record) {
	start := r.Start.UnixMicro()
	hour := start - start%Hour
	c := b.cell(r, hour, start)
	c.count++
	c.first, c.last = min(c.first, start), max(c.last, start)
	c.sums[Cost] += int64(r.Cost)
	c.sums[Saved] += int64(r.CacheSaved)
	c.sums[TokensIn] += r.Usage.InputTokens()
	c.sums[TokensOut] += r.Usage.OutputTokens()
	c.sums[Duration] += r.Duration.Microseconds()
	c.sums[WithUser] += withUser(r)
	c.sums[Running] += int64(r.Running)
	c.durations.Add(r.Duration.Microseconds())
	if r.EndUser != "" && r.Endpoint != usage.EndpointSpan {
		uk := UsersKey{hour, r.Workspace}
		u := b.users[uk]
		if u == nil {
			u = hyperloglog.New14()
			b.users[uk] = u
		}
		u.Insert([]byte(r.EndUser))
	}
	if b.total++; b.total <= maxListedIDs {
		b.ids = append(b.ids, hashID(r.ID))
	}
}

// hashID is FNV-1a with a final mix. In an hour with a million requests, two ids have the
// same hash once in 10^7 such hours.
func hashID(id string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(id) {
		h = (h ^ uint64(id[i])) * 1099511628211
	}
	h ^= h >> 33
	h *= 0xff51afd7ed558ccd
	return h ^ h>>33
}

// Cubes of version 1 have the sums up to WithUser.
const (
	cubeVersion = 2
	cubeFirst   = 1
)

// encode returns the encoded cube: version, texts, cells, users, ids.
func (b *cubeBuilder) encode() ([]byte, error) {
	out := append(make([]byte, 0, 256+64*len(b.cells)+9*len(b.ids)), cubeVersion)
	out = binary.AppendUvarint(out, uint64(len(b.values)))
	for _, s := range b.values {
		out = append(binary.AppendUvarint(out, uint64(len(s))), s...)
	}
	out = binary.AppendUvarint(out, uint64(len(b.cells)))
	var scratch []byte
	for k, c := range b.cells {
		out = binary.AppendVarint(out, k.hour/Hour)
		for _, code := range k.dims {
			out = binary.AppendUvarint(out, uint64(code))
		}
		out = binary.AppendUvarint(out, uint64(c.count))
		out = binary.AppendUvarint(out, uint64(c.first-k.hour))
		out = binary.AppendUvarint(out, uint64(c.last-k.hour))
		for i := Cost; i < NumInts; i++ {
			out = binary.AppendVarint(out, c.sums[i])
		}
		scratch = c.durations.appendTo(scratch[:0])
		out = append(binary.AppendUvarint(out, uint64(len(scratch))), scratch...)
	}
	out = binary.AppendUvarint(out, uint64(len(b.users)))
	for k, u := range b.users {
		sketch, err := u.MarshalBinary()
		if err != nil {
			return nil, err
		}
		out = binary.AppendVarint(out, k.Hour/Hour)
		out = append(binary.AppendUvarint(out, uint64(len(k.Workspace))), k.Workspace...)
		out = append(binary.AppendUvarint(out, uint64(len(sketch))), sketch...)
	}
	if b.total > maxListedIDs {
		return append(out, 0), nil
	}
	slices.Sort(b.ids)
	out = append(out, 1)
	for _, id := range b.ids {
		out = binary.LittleEndian.AppendUint64(out, id)
	}
	return out, nil
}

// decodeCube decodes a cube. The cells alias b, which must not change.
func decodeCube(b []byte) (*Cube, error) {
	if len(b) == 0 || b[0] < cubeFirst || b[0] > cubeVersion {
		return nil, errCube
	}
	summed := NumInts
	if b[0] == cubeFirst {
		summed = WithUser + 1
	}
	c := byteReader{b: b[1:]}
	values := make([]string, c.count(1))
	for i := range values {
		values[i] = string(c.bytes())
	}
	n := c.count(int(NumCubeDims) + 10)
	t := &Table{N: n, Count: make([]int64, n), First: make([]int64, n), Last: make([]int64, n), durations: make([]packed, n)}
	codes := make([]uint32, int(NumCubeDims)*n)
	for d := range NumCubeDims {
		t.Dims[d] = &Strings{Values: values, Codes: codes[int(d)*n : int(d+1)*n]}
	}
	sums := make([]int64, int(NumInts)*n)
	for i := range NumInts {
		t.Ints[i] = sums[int(i)*n : int(i+1)*n]
	}
	for i := range n {
		hour := c.int() * Hour
		t.Ints[Start][i] = hour
		for d := range NumCubeDims {
			code := c.uint()
			if code >= uint64(len(values)) {
				return nil, errCube
			}
			t.Dims[d].Codes[i] = uint32(code)
		}
		t.Count[i] = int64(c.uint())
		t.First[i], t.Last[i] = hour+int64(c.uint()), hour+int64(c.uint())
		for k := Cost; k < summed; k++ {
			t.Ints[k][i] = c.int()
		}
		t.durations[i] = c.bytes()
	}
	cube := &Cube{Cells: t, Users: make(map[UsersKey]*hyperloglog.Sketch), bytes: int64(len(b) + 4*len(codes) + 8*len(sums) + 48*n)}
	for range c.count(3) {
		k := UsersKey{Hour: c.int() * Hour, Workspace: string(c.bytes())}
		u := new(hyperloglog.Sketch)
		if err := u.UnmarshalBinary(c.bytes()); err != nil || c.bad {
			return nil, errCube
		}
		cube.Users[k] = u
		cube.bytes += 1 << 12
	}
	if c.bad || len(c.b) == 0 {
		return nil, errCube
	}
	if listed := c.b[0] == 1; listed {
		c.b = c.b[1:]
		cube.ids = make([]uint64, len(c.b)/8)
		for i := range cube.ids {
			cube.ids[i] = binary.LittleEndian.Uint64(c.b[8*i:])
		}
		cube.bytes += int64(8 * len(cube.ids))
	}
	return cube, nil
}

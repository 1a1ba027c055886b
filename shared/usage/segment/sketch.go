package segment

import (
	"encoding/binary"
	"errors"
	"math"
	"math/bits"
)

// A latency sketch counts values in buckets with bounds that grow by a fixed factor (a
// DDSketch), so a quantile has a relative error of at most 1 percent. Merging adds
// counts, so the order of merges does not matter.

// Gamma is the growth factor for a relative error of 1 percent.
const Gamma = 1.01 / 0.99

// maxBucket suffices for values up to about 10^9 seconds, in microseconds.
const maxBucket = 1750

// upper is the largest value of each bucket: Gamma to the power of its number.
var upper = func() (u [maxBucket + 1]int64) {
	for i := range u {
		u[i] = int64(math.Pow(Gamma, float64(i)))
	}
	u[maxBucket] = math.MaxInt64
	return u
}()

// slots maps the bit length of a value and the six bits after the first one to the bucket
// of the smallest such value. A slot is narrower than a bucket, so a value of the slot is
// in that bucket or the next one.
var slots = func() (s [64 << 6]uint16) {
	bucket := 0
	for i := range s {
		v := int64(64 | i&63)
		if length := i >> 6; length < 6 {
			v >>= 6 - length
		} else {
			v <<= min(length, 62) - 6
		}
		for v > upper[bucket] {
			bucket++
		}
		s[i] = uint16(bucket)
	}
	return s
}()

// bucketOf returns the bucket of a value in microseconds; all values up to 1 are in bucket
// 0.
func bucketOf(v int64) int {
	if v <= 1 {
		return 0
	}
	length := bits.Len64(uint64(v)) - 1
	lead := v << 6 >> length
	if length > 6 {
		lead = v >> (length - 6)
	}
	bucket := int(slots[length<<6|int(lead&63)])
	for v > upper[bucket] {
		bucket++
	}
	return bucket
}

// bucketValue returns the representative value of a bucket.
func bucketValue(i int) float64 {
	if i == 0 {
		return 1
	}
	return math.Pow(Gamma, float64(i)) * 2 / (Gamma + 1)
}

// Histogram counts values in microseconds. The zero value is empty.
type Histogram struct {
	first int // bucket that n[0] counts
	n     []int64
	total int64
}

// AddBucket counts values in a bucket. The bucket of a value is the smallest power of
// Gamma that is not below it.
func (h *Histogram) AddBucket(bucket int, count int64) { h.add(min(max(bucket, 0), maxBucket), count) }

// Add counts one value.
func (h *Histogram) Add(v int64) { h.add(bucketOf(v), 1) }

func (h *Histogram) add(bucket int, count int64) {
	switch {
	case len(h.n) == 0:
		h.first = bucket
		h.n = append(h.n[:0], 0)
	case bucket < h.first:
		grown := make([]int64, h.first-bucket+len(h.n))
		copy(grown[h.first-bucket:], h.n)
		h.first, h.n = bucket, grown
	case bucket >= h.first+len(h.n):
		if bucket-h.first < cap(h.n) {
			h.n = h.n[:bucket-h.first+1]
		} else {
			grown := make([]int64, bucket-h.first+1, bucket-h.first+33)
			copy(grown, h.n)
			h.n = grown
		}
	}
	h.n[bucket-h.first] += count
	h.total += count
}

// Merge adds the counts of another histogram.
func (h *Histogram) Merge(o *Histogram) {
	for i, n := range o.n {
		if n > 0 {
			h.add(o.first+i, n)
		}
	}
}

// Count returns the number of counted values.
func (h *Histogram) Count() int64 { return h.total }

// Quantile returns the smallest counted value, in microseconds, such that at least a
// share q (0 to 1) of the values does not exceed it; 0 if there are none. With few
// values, a high quantile is therefore the largest one and never below the average.
func (h *Histogram) Quantile(q float64) float64 {
	rank := rankOf(q, h.total)
	var seen int64
	for i, n := range h.n {
		if seen += n; seen > rank && n > 0 {
			return bucketValue(h.first + i)
		}
	}
	return 0
}

// rankOf returns the index of a quantile among n sorted values.
func rankOf(q float64, n int64) int64 {
	return max(int64(math.Ceil(q*float64(n))), 1) - 1
}

// appendTo encodes the histogram as pairs: distance to the previous bucket, and count.
func (h *Histogram) appendTo(b []byte) []byte {
	used := 0
	for _, n := range h.n {
		if n > 0 {
			used++
		}
	}
	b = binary.AppendUvarint(b, uint64(used))
	last := 0
	for i, n := range h.n {
		if n > 0 {
			b = binary.AppendUvarint(b, uint64(h.first+i-last))
			b = binary.AppendUvarint(b, uint64(n))
			last = h.first + i
		}
	}
	return b
}

var errCube = errors.New("segment: the cube is damaged")

// packed is an encoded histogram in a cube; it can be merged without decoding it first.
type packed []byte

// mergeInto adds the counts of an encoded histogram.
func (p packed) mergeInto(h *Histogram) {
	c := byteReader{b: p}
	bucket := 0
	for range c.count(2) {
		bucket += int(c.uint())
		n := int64(c.uint())
		if c.bad || bucket > maxBucket {
			return
		}
		h.add(bucket, n)
	}
}

// byteReader reads varints and byte strings from the front; bad is sticky.
type byteReader struct {
	b   []byte
	bad bool
}

func (c *byteReader) fail() { c.b, c.bad = nil, true }

func (c *byteReader) uint() uint64 {
	n, w := binary.Uvarint(c.b)
	if w <= 0 {
		c.fail()
		return 0
	}
	c.b = c.b[w:]
	return n
}

func (c *byteReader) int() int64 {
	n := c.uint()
	return int64(n>>1) ^ -int64(n&1)
}

// count reads the length of a list with items of at least size bytes.
func (c *byteReader) count(size int) int {
	n := c.uint()
	if n > uint64(len(c.b)/size) {
		c.fail()
		return 0
	}
	return int(n)
}

func (c *byteReader) bytes() []byte {
	n := c.uint()
	if n > uint64(len(c.b)) {
		c.fail()
		return nil
	}
	s := c.b[:n:n]
	c.b = c.b[n:]
	return s
}

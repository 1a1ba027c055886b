package segment

import (
	"context"
	"slices"
)

// Part is a segment of a list, with the other segments that may have the same records.
type Part struct {
	Manifest
	rivals []*Manifest // segments whose records this part leaves out if it has them too
	rival  bool        // it is a rival of another part
}

// Overlapped tells whether another part may leave out records because this part has them.
func (p *Part) Overlapped() bool { return p.rival }

// Overlaps tells whether the part may have records that it leaves out because another part
// has them.
func (p *Part) Overlaps() bool { return len(p.rivals) > 0 }

// HashID is the form in which Twice returns an event id.
func HashID(id string) uint64 { return hashID(id) }

// Parts turns segments into parts. Every record is in one part only, if each part leaves
// out what Twice returns for it. If several segments have a record, the most merged one
// keeps it.
func Parts(list []Manifest) []Part { return parted(list, merged) }

// Holes returns the parts for the segments that are in no file, for when other tools read
// the files: these parts leave out every record that is in a file, even if the file's
// segment is less merged.
func Holes(list []Manifest) []Part {
	parts := parted(list, func(x, y *Manifest) int {
		if x.InFile() != y.InFile() {
			if x.InFile() {
				return -1
			}
			return 1
		}
		return merged(x, y)
	})
	return slices.DeleteFunc(parts, func(p Part) bool { return p.InFile() })
}

// merged puts the most merged segment first.
func merged(x, y *Manifest) int {
	if x.Tier != y.Tier {
		return int(y.Tier - x.Tier)
	}
	if x.ID < y.ID {
		return -1
	}
	return 1
}

// parted is Parts with a given order: if several segments have a record, the first one
// keeps it.
func parted(list []Manifest, order func(x, y *Manifest) int) []Part {
	list = slices.Clone(list)
	slices.SortFunc(list, func(x, y Manifest) int { return order(&x, &y) })
	parts := make([]Part, len(list))
	byMin := make([]int, len(list))
	for i := range list {
		parts[i].Manifest = list[i]
		byMin[i] = i
	}
	slices.SortFunc(byMin, func(x, y int) int { return compare(list[x].Min, list[y].Min) })
	var open []int // segments that may overlap with the following ones
	for _, i := range byMin {
		kept := open[:0]
		for _, j := range open {
			if list[j].Max/sameTime < list[i].Min/sameTime {
				continue
			}
			kept = append(kept, j)
			second := max(i, j)
			parts[second].rivals = append(parts[second].rivals, &list[min(i, j)])
			parts[min(i, j)].rival = true
		}
		open = append(kept, i)
	}
	return parts
}

// Twice returns, in order, HashID of the part's records that one of its rivals has; nil:
// there are none.
func (a *Archive) Twice(ctx context.Context, p *Part) ([]uint64, error) {
	var all []uint64
	for _, rival := range p.rivals {
		twice, err := a.shared(ctx, rival, &p.Manifest)
		if err != nil {
			return nil, err
		}
		all = append(all, twice...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// TwiceWeight is about how many bytes Twice takes.
func (p *Part) TwiceWeight() int64 {
	most := int64(0)
	for _, rival := range p.rivals {
		most = max(most, rival.idsWeight())
	}
	return p.idsWeight() + most
}

// CubeWeight is about how many bytes reading the segment's cube takes. A segment that was
// written before the size of cubes was noted is assumed to have a usual one.
func (m *Manifest) CubeWeight() int64 {
	size := m.cube
	if size == 0 {
		size = 64<<10 + 9*min(m.Records, maxListedIDs)
	}
	return cubeGrowth * size
}

// cubeGrowth is about how many times larger a cube is in memory than as bytes.
const cubeGrowth = 4

// idsWeight is about how many bytes ids takes: all ids, twice while they are gathered, and
// the decoded ids of a group.
func (m *Manifest) idsWeight() int64 {
	weight := m.CubeWeight() + 16*m.Records
	if m.Records > maxListedIDs {
		weight += groupRows * idWeight
	}
	return weight
}

// idWeight is about how many bytes the decoded id of a record takes.
const idWeight = 96

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// shared returns the ids that two segments have in common. Segments never change, so the
// answer is cached.
func (a *Archive) shared(ctx context.Context, x, y *Manifest) ([]uint64, error) {
	key := x.Name + "&" + y.Name
	if v, ok := a.twice.get(key); ok {
		return v.([]uint64), nil
	}
	if x.Records > y.Records {
		x, y = y, x
	}
	few, err := a.ids(ctx, x)
	if err != nil {
		return nil, err
	}
	many, err := a.ids(ctx, y)
	if err != nil {
		return nil, err
	}
	var both []uint64
	for _, id := range few {
		at, found := slices.BinarySearch(many, id)
		if found {
			both = append(both, id)
		}
		many = many[at:]
	}
	a.twice.put(key, both, int64(8*len(both)))
	return both, nil
}

package segment

import (
	"context"
	"slices"
)

// Part is a segment of a list with what it may have in common with the others.
type Part struct {
	Manifest
	rivals []*Manifest // segments of which it leaves out what they have too
	rival  bool        // is one of another part
}

// Overlapped tells whether another part leaves out records that this one has too.
func (p *Part) Overlapped() bool { return p.rival }

// Overlaps tells whether records of the part may stand in another part as well.
func (p *Part) Overlaps() bool { return len(p.rivals) > 0 }

// HashID is what Twice gives of an event id.
func HashID(id string) uint64 { return hashID(id) }

// Parts turns segments into parts in which every record stands once, less what
// Twice says of each. The most merged segment keeps a record that several have.
func Parts(list []Manifest) []Part { return parted(list, merged) }

// Holes gives the parts of the segments that no file has, where other tools read the
// files: they leave out all that a file has too, however little it is merged.
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

// parted is Parts where the first in an order keeps a record that several have.
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
	var open []int // segments that may overlap with the next ones
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

// Twice gives, in order, HashID of the part's records that an earlier part has;
// nil: of none.
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

// CubeWeight is about how many bytes it takes to read the segment's cube. That of a
// segment that was written before its size was noted is taken for a usual one.
func (m *Manifest) CubeWeight() int64 {
	size := m.cube
	if size == 0 {
		size = 64<<10 + 9*min(m.Records, maxListedIDs)
	}
	return cubeGrowth * size
}

// cubeGrowth is about how many times its bytes a cube takes in memory.
const cubeGrowth = 4

// idsWeight is about how many bytes ids takes: all, twice while they are gathered, and
// the ids of a group.
func (m *Manifest) idsWeight() int64 {
	weight := m.CubeWeight() + 16*m.Records
	if m.Records > maxListedIDs {
		weight += groupRows * idWeight
	}
	return weight
}

// idWeight is about what the id of a record takes, decoded.
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

// shared gives the ids that two segments have in common. Segments never change,
// so the answer is remembered.
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

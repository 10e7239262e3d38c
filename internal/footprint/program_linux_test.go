package footprint

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const smaps = `00400000-01836000 r-xp 00000000 fe:00 11 /opt/tool ctl
Size:              20696 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me 
01836000-02d3e000 r--p 01436000 fe:00 11                         /opt/tool ctl
Anonymous:             0 kB
02d3e000-02e19000 rw-p 0293e000 fe:00 11                         /opt/tool ctl
Anonymous:             0 kB
03000000-03001000 r-xp 00000000 fe:00 11                         /opt/tool ctl
Anonymous:             4 kB
04000000-04001000 r--s 00000000 fe:00 11                         /opt/tool ctl
Anonymous:             0 kB
05000000-05001000 r--p 00000000 fe:00 12                         /lib/other
Anonymous:             0 kB
c000000000-c000400000 rw-p 00000000 00:00 0 
Anonymous:          4096 kB
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                  [vdso]
Anonymous:             0 kB
`

// What can be written, is another file's or has a breakpoint in it is left alone.
func TestMappings(t *testing.T) {
	got, err := mappings(strings.NewReader(smaps), "/opt/tool ctl")
	want := []mapping{{0x400000, 0x1836000}, {0x1836000, 0x2d3e000}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(mapping{})); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// This program goes on without the pages of its file, which it reads again.
func TestDropProgram(t *testing.T) {
	exe, err := os.Readlink("/proc/self/exe")
	if err != nil {
		t.Skip("there is no /proc here: ", err)
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Skip("the kernel has no smaps: ", err)
	}
	defer f.Close()
	if all, err := mappings(f, exe); err != nil || len(all) < 2 {
		t.Errorf("the program is mapped at %v, %v", all, err)
	}
	for range 3 {
		if err := dropProgram(); err != nil {
			t.Fatal(err)
		}
	}
}

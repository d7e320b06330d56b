package proc

import (
	"context"
	"os"

	"golang.org/x/sys/windows"
)

// UntilParentEnds returns a context that ends with the process that has started us. ssh.exe
// may leave our standard input open when it is ended (Win32-OpenSSH), and there is no
// signal. The goroutine ends with this process.
func UntilParentEnds(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		parent, ok := openParent()
		if !ok {
			return
		}
		defer func() { _ = windows.CloseHandle(parent) }()
		if event, err := windows.WaitForSingleObject(parent, windows.INFINITE); err == nil && event == windows.WAIT_OBJECT_0 {
			cancel()
		}
	}()
	return ctx, cancel
}

// openParent opens our parent. It is not ok if the parent has gone; its number may be
// another process's then, one that began after us.
func openParent() (windows.Handle, bool) {
	const access = windows.SYNCHRONIZE | windows.PROCESS_QUERY_LIMITED_INFORMATION
	parent, err := windows.OpenProcess(access, false, uint32(os.Getppid()))
	if err != nil {
		return 0, false
	}
	theirs, theirErr := began(parent)
	ours, ourErr := began(windows.CurrentProcess())
	if theirErr != nil || ourErr != nil || theirs > ours {
		_ = windows.CloseHandle(parent)
		return 0, false
	}
	return parent, true
}

// began returns when the process was made, in nanoseconds.
func began(process windows.Handle) (int64, error) {
	var creation, exit, kernel, user windows.Filetime
	err := windows.GetProcessTimes(process, &creation, &exit, &kernel, &user)
	return creation.Nanoseconds(), err
}

// ParentName is not known on Windows.
func ParentName() string { return "" }

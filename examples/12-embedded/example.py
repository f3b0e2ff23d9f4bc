"""An operator within another program: in a thread beside the program's own work."""

import sys
import threading
from typing import Any

import fnop


@fnop.on.create("fnopexamples")
def greet(name: str, **_: Any) -> dict[str, str]:
    return {"message": f"hello, {name}"}


@fnop.on.delete("fnopexamples")
def part(name: str, logger: fnop.Logger, **_: Any) -> None:
    logger.info("goodbye, %s", name)


def main() -> None:
    """Run the program; the operator is a part of it."""
    ready, stop = threading.Event(), threading.Event()

    def operate() -> None:
        fnop.run(
            namespaces=sys.argv[1:] or ["default"],
            ready_flag=ready,
            stop_flag=stop,
        )

    thread = threading.Thread(target=operate)
    thread.start()
    try:
        while thread.is_alive() and not ready.wait(0.1):
            pass
        if thread.is_alive():
            print("the operator is ready; press Enter to end the program", flush=True)
            sys.stdin.readline()
    finally:
        stop.set()
        thread.join()
    print("the program ends")


if __name__ == "__main__":
    main()
